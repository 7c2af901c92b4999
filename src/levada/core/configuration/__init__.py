"""Where settings come from: files, the environment, flags, and what a collection keeps."""
