list(APPEND ASSAY_OPS_SOURCES matmul/forms.cpp matmul/reference.cpp matmul/vector.cpp)
list(APPEND ASSAY_OPS_TESTS matmul/tests/matmul_test.cpp)
