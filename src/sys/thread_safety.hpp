#pragma once

/// Attributes of clang's thread safety analysis (-Wthread-safety); empty for other compilers.
#if defined(__clang__)
#define TENURE_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define TENURE_THREAD_ATTRIBUTE(x)
#endif

#define TENURE_CAPABILITY(name) TENURE_THREAD_ATTRIBUTE(capability(name))
#define TENURE_SCOPED_CAPABILITY TENURE_THREAD_ATTRIBUTE(scoped_lockable)
#define TENURE_GUARDED_BY(latch) TENURE_THREAD_ATTRIBUTE(guarded_by(latch))
#define TENURE_REQUIRES(...) TENURE_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define TENURE_ACQUIRE(...) TENURE_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define TENURE_TRY_ACQUIRE(...) TENURE_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define TENURE_RELEASE(...) TENURE_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define TENURE_NO_THREAD_SAFETY_ANALYSIS TENURE_THREAD_ATTRIBUTE(no_thread_safety_analysis)
