list(APPEND ASSAY_OPS_SOURCES embed/check.cpp embed/forms.cpp embed/reference.cpp)
