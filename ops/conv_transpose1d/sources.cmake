list(APPEND ASSAY_OPS_SOURCES conv_transpose1d/forms.cpp conv_transpose1d/polyphase.cpp
     conv_transpose1d/reference.cpp)
list(APPEND ASSAY_OPS_TESTS conv_transpose1d/tests/conv_transpose1d_test.cpp)
