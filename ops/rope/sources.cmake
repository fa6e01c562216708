list(APPEND ASSAY_OPS_SOURCES rope/forms.cpp rope/reference.cpp rope/table.cpp)
