"""What runs the kernels: today the processor, through LLVM vectors emitted from operation lists."""
