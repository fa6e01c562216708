list(APPEND ASSAY_OPS_SOURCES causal_conv1d/forms.cpp causal_conv1d/reference.cpp causal_conv1d/window.cpp)
