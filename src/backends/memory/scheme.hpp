#pragma once

namespace tenure::backends {

/// Registers memory:// once. connect() calls it: a linker would leave out a static initializer in
/// a static library that nothing refers to. Thread safe.
void add_memory_scheme();

}  // namespace tenure::backends
