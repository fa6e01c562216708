list(APPEND ASSAY_OPS_SOURCES gated_delta_rule/chunked.cpp gated_delta_rule/forms.cpp gated_delta_rule/reference.cpp
                              gated_delta_rule/vector.cpp)
list(APPEND ASSAY_OPS_TESTS gated_delta_rule/tests/gated_delta_rule_test.cpp)
