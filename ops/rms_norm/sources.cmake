list(APPEND ASSAY_OPS_SOURCES rms_norm/forms.cpp rms_norm/reference.cpp)
