list(APPEND ASSAY_OPS_SOURCES embed/check.cpp embed/forms.cpp embed/reference.cpp embed/vector.cpp)
list(APPEND ASSAY_OPS_TESTS embed/tests/embed_test.cpp)
