#include "server/raft/snapshot_file.hpp"

#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/bytes.hpp"
#include "server/raft/file.hpp"

namespace tenure::server::raft {
namespace {

constexpr std::string_view snapshot_magic = "TENURESF";
// Magic (8), version (4) and length of the rest of the header (4).
constexpr std::size_t preamble_bytes = 16;

std::string encode_header(const SnapshotMark& mark, std::string_view body) {
  core::ByteWriter fields;
  fields.fixed64(mark.index.get());
  fields.fixed64(mark.term.get());
  fields.fixed64(mark.configuration_index.get());
  fields.text(mark.configuration);
  fields.fixed64(body.size());
  fields.fixed32(core::crc32c(body));

  core::ByteWriter header;
  header.raw(snapshot_magic);
  header.fixed32(snapshot_file_version);
  header.fixed32(static_cast<std::uint32_t>(fields.bytes().size() + 4));
  header.raw(fields.bytes());
  header.fixed32(core::crc32c(header.bytes()));
  return std::move(header).take();
}

struct Header {
  SnapshotMark mark{};
  std::size_t header_bytes{};
  std::size_t body_bytes{};
  std::uint32_t body_checksum{};
};

Result<Header> decode_header(std::string_view bytes) {
  if (bytes.size() < preamble_bytes || !bytes.starts_with(snapshot_magic)) {
    return fail(Errc::invalid_argument, "not a snapshot: wrong magic number");
  }
  core::ByteReader preamble(bytes.substr(snapshot_magic.size()));
  if (const auto version = preamble.fixed32(); version != snapshot_file_version) {
    return fail(Errc::invalid_argument, "its version is " + std::to_string(version) +
                                            ", this program supports version " +
                                            std::to_string(snapshot_file_version));
  }
  const std::size_t size = preamble.fixed32();
  if (size < 4 || size > bytes.size() - preamble_bytes) {
    return fail(Errc::invalid_argument, "truncated header");
  }
  const auto sealed = bytes.substr(0, preamble_bytes + size - 4);
  core::ByteReader seal(bytes.substr(sealed.size(), 4));
  if (seal.fixed32() != core::crc32c(sealed)) {
    return fail(Errc::invalid_argument, "checksum mismatch in the header");
  }
  core::ByteReader fields(sealed.substr(preamble_bytes));
  Header header{.header_bytes = preamble_bytes + size};
  header.mark.index = Index{fields.fixed64()};
  header.mark.term = Term{fields.fixed64()};
  header.mark.configuration_index = Index{fields.fixed64()};
  header.mark.configuration = fields.text();
  header.body_bytes = fields.fixed64();
  header.body_checksum = fields.fixed32();
  if (!fields.ok()) {
    return fail(Errc::invalid_argument, "invalid header: " + fields.error());
  }
  return header;
}

Result<Snapshot> decode_file(std::string bytes) {
  auto header = decode_header(bytes);
  if (!header) {
    return std::unexpected(std::move(header).error());
  }
  if (bytes.size() - header->header_bytes != header->body_bytes) {
    return fail(Errc::invalid_argument,
                "it has " + std::to_string(bytes.size()) + " bytes, expected " +
                    std::to_string(header->header_bytes + header->body_bytes));
  }
  bytes.erase(0, header->header_bytes);
  if (core::crc32c(bytes) != header->body_checksum) {
    return fail(Errc::invalid_argument, "checksum mismatch in the body");
  }
  return Snapshot{.mark = std::move(header->mark),
                  .body = std::make_shared<const std::string>(std::move(bytes))};
}

}  // namespace

Result<std::optional<Snapshot>> SnapshotFile::read() const {
  if (!std::filesystem::exists(path_)) {
    return std::nullopt;
  }
  const auto file = File::open(path_, File::Mode::read);
  if (!file) {
    return std::unexpected(file.error());
  }
  auto bytes = file->read_all();
  if (!bytes) {
    return std::unexpected(std::move(bytes).error());
  }
  auto snapshot = decode_file(std::move(*bytes));
  if (!snapshot) {
    return fail(Errc::invalid_argument,
                "the snapshot " + path_.string() + " cannot be used: " + snapshot.error().detail +
                    ". The log no longer contains its entries. Restore the folder from a "
                    "backup; in a cluster, empty the folder and let this member join again.");
  }
  return std::optional(std::move(*snapshot));
}

Result<void> SnapshotFile::write(const SnapshotMark& mark, std::string_view body) {
  // Encodes outside the mutex: the checksum of a large body takes long.
  const auto header = encode_header(mark, body);
  const sys::MutexGuard guard(mutex_);
  if (mark.index <= written_) {
    return {};
  }
  if (auto replaced = replace_file(path_, header, body); !replaced) {
    return replaced;
  }
  written_ = mark.index;
  return {};
}

std::size_t SnapshotFile::bytes() const {
  std::error_code ignored;
  const auto size = std::filesystem::file_size(path_, ignored);
  return ignored ? 0 : size;
}

}  // namespace tenure::server::raft
