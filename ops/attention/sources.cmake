list(APPEND ASSAY_OPS_SOURCES attention/forms.cpp attention/reference.cpp)
