"""Music and its descriptions, made from seeds: scores, captions, and sound."""
