// A launch: every thread of every block in turn. `args` are addresses of the arguments, as a
// driver takes them.
template <class... A, size_t... I>
static void thread(void (*kernel)(A...), void** args, std::index_sequence<I...>) {
    kernel(*(std::remove_reference_t<A>*)args[I]...);
}

template <class... A>
static void launch(void (*kernel)(A...), unsigned grid, unsigned block, size_t shared, void** args) {
    blockDim.x = block;
    for (blockIdx.x = 0; blockIdx.x < grid; blockIdx.x++) {
        unsigned* memory = new unsigned[shared / 4 + 1];  // dirty, as on a device
        memset(memory, 0xa5, shared);
        emulated_shared = memory;
        for (threadIdx.x = 0; threadIdx.x < block; threadIdx.x++)
            thread(kernel, args, std::index_sequence_for<A...>{});
        delete[] memory;
    }
}

#define LAUNCH(kernel) \
    extern "C" void launch_##kernel(unsigned grid, unsigned block, size_t shared, void** args) { \
        launch(kernel, grid, block, shared, args); \
    }
