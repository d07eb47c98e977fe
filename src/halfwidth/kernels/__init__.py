"""Python functions to cached machine code, BLAS calls from inside kernels, and pieces that several loops share."""
