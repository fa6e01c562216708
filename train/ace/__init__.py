"""ACE-Step 1.5 in plain PyTorch, for training: the parameters have diffusers' names, so that a state dict is a
checkpoint. `python3 train/check_ace.py` holds them against the recorded answers of diffusers' own pipeline."""
