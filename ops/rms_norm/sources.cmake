list(APPEND ASSAY_OPS_SOURCES rms_norm/forms.cpp rms_norm/reference.cpp rms_norm/vector.cpp)
list(APPEND ASSAY_OPS_TESTS rms_norm/tests/rms_norm_test.cpp)
