list(APPEND ASSAY_OPS_SOURCES swiglu/forms.cpp swiglu/reference.cpp swiglu/vector.cpp)
list(APPEND ASSAY_OPS_TESTS swiglu/tests/swiglu_test.cpp)
