#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include <rocksdb/options.h>
#include <rocksdb/utilities/transaction.h>
#include <rocksdb/utilities/transaction_db.h>
#include <unistd.h>

#include <tenure/ids.hpp>
#include <tenure/key_range.hpp>
#include <tenure/lock_mode.hpp>

namespace tenure::bench {

/// Which of its two lock tables RocksDB uses: it cannot use both at once.
enum class RocksLocks : std::uint8_t { points, ranges };

/// Pessimistic transactions of RocksDB 7.8, only locking: GetForUpdate() without a value and
/// without validation reads nothing, and nothing is ever written. It knows shared and exclusive;
/// intention modes are asked for as shared.
template <RocksLocks kind>
class RocksDb {
 public:
  static constexpr std::string_view name = "rocksdb";

  explicit RocksDb(std::size_t /*locks_at_once*/ = 0) : folder_(fresh_folder()) {
    rocksdb::Options options;
    options.create_if_missing = true;
    rocksdb::TransactionDBOptions locking;
    locking.num_stripes = 128;
    if constexpr (kind == RocksLocks::ranges) {
      const std::shared_ptr<rocksdb::RangeLockManagerHandle> ranges(
          rocksdb::NewRangeLockManager(nullptr));
      ranges->SetMaxLockMemory(std::size_t{1} << 30U);
      locking.lock_mgr_handle = ranges;
    }
    rocksdb::TransactionDB* opened = nullptr;
    insist(rocksdb::TransactionDB::Open(options, locking, folder_.string(), &opened));
    database_.reset(opened);
  }
  RocksDb(const RocksDb&) = delete;
  RocksDb& operator=(const RocksDb&) = delete;
  ~RocksDb() {
    database_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  /// One transaction.
  class Session {
   public:
    Session(RocksDb& table, TxnId /*txn*/) : Session(table, short_wait()) {}
    Session(RocksDb& table, const rocksdb::TransactionOptions& options)
        : family_(table.database_->DefaultColumnFamily()),
          txn_(table.database_->BeginTransaction(write_options(), options)) {}

    [[nodiscard]] bool acquire(ResourceId resource, LockMode mode) {
      const Key key = bytes_of(resource.get());
      return acquire(std::string_view(key.data(), key.size()), mode);
    }
    [[nodiscard]] bool acquire(std::string_view key, LockMode mode) {
      const bool exclusive = is_exclusive(mode) || mode == LockMode::update;
      return txn_
          ->GetForUpdate({}, family_, slice(key), static_cast<std::string*>(nullptr), exclusive,
                         /*do_validate=*/false)
          .ok();
    }
    void release(ResourceId resource) {
      const Key key = bytes_of(resource.get());
      release(std::string_view(key.data(), key.size()));
    }
    void release(std::string_view key) { txn_->UndoGetForUpdate(family_, slice(key)); }
    void release_upgraded(ResourceId resource) {
      release(resource);
      release(resource);
    }
    void release_all() { insist(txn_->Rollback()); }

    [[nodiscard]] bool acquire_range(const KeyRange& range, LockMode /*mode*/) {
      const Key start = bytes_of(range.start());
      const Key end = bytes_of(range.end());
      return txn_
          ->GetRangeLock(family_, rocksdb::Endpoint(start.data(), start.size(), false),
                         rocksdb::Endpoint(end.data(), end.size(), false))
          .ok();
    }
    /// RocksDB releases ranges only together, at the end of the transaction.
    void release_range(const KeyRange& /*range*/) { release_all(); }

    [[nodiscard]] bool waits() const {
      std::uint32_t family = 0;
      std::string key;
      return !txn_->GetWaitingTxns(&family, &key).empty();
    }

   private:
    using Key = std::array<char, 8>;

    /// Not 0: that refuses also when another thread is inside the table for a moment.
    [[nodiscard]] static rocksdb::TransactionOptions short_wait() {
      rocksdb::TransactionOptions options;
      options.lock_timeout = 100;
      return options;
    }
    [[nodiscard]] static rocksdb::WriteOptions write_options() {
      rocksdb::WriteOptions options;
      options.sync = false;
      options.disableWAL = true;
      return options;
    }
    [[nodiscard]] static rocksdb::Slice slice(std::string_view text) {
      return {text.data(), text.size()};
    }
    /// Big-endian, so that the order of the bytes is the order of the numbers.
    [[nodiscard]] static Key bytes_of(std::uint64_t number) {
      return std::bit_cast<Key>(__builtin_bswap64(number));
    }

    rocksdb::ColumnFamilyHandle* family_;
    std::unique_ptr<rocksdb::Transaction> txn_;
  };

 private:
  static void insist(const rocksdb::Status& status) {
    if (!status.ok()) {
      std::fprintf(stderr, "RocksDB: %s\n", status.ToString().c_str());
      std::abort();
    }
  }

  [[nodiscard]] static std::filesystem::path fresh_folder() {
    static std::atomic<int> made = 0;
    return std::filesystem::temp_directory_path() /
           ("tenure_bench_rocksdb_" + std::to_string(getpid()) + "_" + std::to_string(++made));
  }

  std::filesystem::path folder_;
  std::unique_ptr<rocksdb::TransactionDB> database_;
};

}  // namespace tenure::bench
