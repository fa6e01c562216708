list(APPEND ASSAY_OPS_SOURCES snake/forms.cpp snake/reference.cpp snake/vector.cpp)
list(APPEND ASSAY_OPS_TESTS snake/tests/snake_test.cpp)
