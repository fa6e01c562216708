list(APPEND ASSAY_OPS_SOURCES attention/forms.cpp attention/reference.cpp attention/vector.cpp)
list(APPEND ASSAY_OPS_TESTS attention/tests/attention_test.cpp attention/tests/exp_test.cpp attention/tests/masks_test.cpp)
