# Compiles every device translation unit for Hopper with nvcc: shows that the device code compiles where no GPU is.
