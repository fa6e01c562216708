list(APPEND ASSAY_OPS_SOURCES swiglu/forms.cpp swiglu/reference.cpp)
