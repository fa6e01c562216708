list(APPEND ASSAY_OPS_SOURCES rope/forms.cpp rope/reference.cpp rope/vector.cpp rope/table.cpp)
list(APPEND ASSAY_OPS_TESTS rope/tests/rope_test.cpp)
