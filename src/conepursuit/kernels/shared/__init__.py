"""What all kernels use: triangular factors, small quadratic programmes, passes over a matrix."""
