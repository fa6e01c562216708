list(APPEND ASSAY_OPS_SOURCES causal_conv1d/forms.cpp causal_conv1d/reference.cpp causal_conv1d/vector.cpp causal_conv1d/window.cpp)
list(APPEND ASSAY_OPS_TESTS causal_conv1d/tests/causal_conv1d_test.cpp)
