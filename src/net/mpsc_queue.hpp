#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace tenure::net {

/// Lock-free multi-producer, single-consumer queue of jobs. No mutex: a thread that is preempted
/// while it holds a mutex makes all other producers block in the kernel.
///
/// Guarantees
///   - The jobs of one producer run in the order in which they were pushed.
///   - Jobs that never run are destroyed with the queue.
///
/// push() is thread safe; run_all() is for one thread at a time.
class MpscQueue {
 public:
  MpscQueue() = default;
  MpscQueue(const MpscQueue&) = delete;
  MpscQueue& operator=(const MpscQueue&) = delete;
  ~MpscQueue() {
    for_each_taken([](Node&) {});
  }

  /// Returns the queue length after the push. Concurrent pushes return distinct values; the largest
  /// is exact.
  template <class Job>
  std::int64_t push(Job job) {
    auto* const node = std::make_unique<JobNode<Job>>(std::move(job)).release();
    node->next_ = last_.load(std::memory_order_relaxed);
    while (!last_.compare_exchange_weak(node->next_, node)) {
    }
    return ++size_;
  }
  /// Number of jobs. Jobs that run_all() has taken and not counted yet may be missing.
  [[nodiscard]] std::int64_t size() const noexcept { return size_.load(); }

  /// Takes all jobs and runs them in order. Jobs that are pushed while it runs stay queued.
  void run_all() {
    for_each_taken([](Node& node) { node.run(); });
  }

 private:
  class Node {
   public:
    Node() = default;
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;
    virtual ~Node() = default;
    virtual void run() = 0;

    Node* next_ = nullptr;  ///< Node that was pushed before this one.
  };
  template <class Job>
  class JobNode final : public Node {
   public:
    explicit JobNode(Job job) : job_(std::move(job)) {}
    void run() override { job_(); }

   private:
    Job job_;
  };

  template <class Use>
  void for_each_taken(Use use) {
    Node* first = nullptr;
    std::int64_t taken = 0;
    for (auto* node = last_.exchange(nullptr); node != nullptr; ++taken) {
      auto* const before = std::exchange(node->next_, first);
      first = std::exchange(node, before);
    }
    size_ -= taken;
    while (first != nullptr) {
      const std::unique_ptr<Node> node(first);
      first = node->next_;
      use(*node);
    }
  }

  std::atomic<Node*> last_ = nullptr;  ///< Node that was pushed last.
  std::atomic<std::int64_t> size_ = 0;
};

}  // namespace tenure::net
