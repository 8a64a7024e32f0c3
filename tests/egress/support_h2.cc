#include "egress/support_h2.h"

#include <algorithm>
#include <utility>

#include "egress/h2/session.h"

namespace belljar::test {
namespace {

constexpr std::size_t kFrameHead = 9;

std::uint32_t number_at(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < size; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

}  // namespace

std::string number(std::uint32_t value) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(value >> shift & 0xFF);
  return text;
}

std::string frame(std::uint8_t type, std::uint8_t flags, std::uint32_t stream, std::string_view payload) {
  std::string text = number(static_cast<std::uint32_t>(payload.size())).substr(1);
  text += static_cast<char>(type);
  text += static_cast<char>(flags);
  return text + number(stream) + std::string(payload);
}

std::uint32_t Frame::code() const { return number_at(payload, type == kGoaway ? 4 : 0, 4); }

std::string Frame::find(std::string_view name) const {
  const auto found = std::ranges::find(fields, name, &egress::HttpField::name);
  return found == fields.end() ? "" : found->value;
}

Talker::Talker() {
  nghttp2_hd_deflate_new(&deflater_, 4096);
  nghttp2_hd_inflate_new(&inflater_);
}

Talker::~Talker() {
  nghttp2_hd_deflate_del(deflater_);
  nghttp2_hd_inflate_del(inflater_);
}

std::string Talker::preface() { return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(kSettings, 0, 0, ""); }

std::string Talker::block(const egress::h2::Fields& fields) {
  const auto pointers = egress::h2::pointers_to(fields);
  std::string bytes(nghttp2_hd_deflate_bound(deflater_, pointers.data(), pointers.size()), '\0');
  const auto size = nghttp2_hd_deflate_hd(deflater_, reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size(), pointers.data(),
                                          pointers.size());
  bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  return bytes;
}

std::string Talker::headers(std::uint32_t stream, const egress::h2::Fields& fields, std::uint8_t flags) {
  constexpr std::size_t kMost = 16384;
  const std::string all = block(fields);
  if (all.size() <= kMost) return frame(kHeaders, flags, stream, all);
  std::string text = frame(kHeaders, flags & kEndStream, stream, all.substr(0, kMost));
  for (std::size_t at = kMost; at < all.size(); at += kMost)
    text += frame(kContinuation, at + kMost >= all.size() ? kEndHeaders : 0, stream, all.substr(at, kMost));
  return text;
}

std::vector<Frame> Talker::hear(std::string_view bytes) {
  rest_ += bytes;
  std::vector<Frame> frames;
  while (rest_.size() >= kFrameHead) {
    const std::size_t size = number_at(rest_, 0, 3);
    if (rest_.size() < kFrameHead + size) break;
    Frame one{static_cast<std::uint8_t>(rest_[3]),
              static_cast<std::uint8_t>(rest_[4]),
              number_at(rest_, 5, 4),
              rest_.substr(kFrameHead, size),
              {}};
    rest_.erase(0, kFrameHead + size);
    const auto* in = reinterpret_cast<const std::uint8_t*>(one.payload.data());
    std::size_t left = one.type == kHeaders ? one.payload.size() : 0;
    while (left > 0) {
      nghttp2_nv field{};
      int flags = 0;
      const auto taken = nghttp2_hd_inflate_hd2(inflater_, &field, &flags, in, left, 1);
      if (taken < 0) break;
      in += taken;
      left -= static_cast<std::size_t>(taken);
      if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0)
        one.fields.push_back({std::string(reinterpret_cast<char*>(field.name), field.namelen),
                              std::string(reinterpret_cast<char*>(field.value), field.valuelen)});
      if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0) break;
    }
    if (one.type == kHeaders) nghttp2_hd_inflate_end_headers(inflater_);
    frames.push_back(std::move(one));
  }
  return frames;
}

egress::h2::Fields get_fields(std::string path, egress::h2::Fields more) {
  egress::h2::Fields fields{{":method", "GET"}, {":scheme", "https"}, {":authority", "web.test"}, {":path", std::move(path)}};
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

bool Plain::open(std::string& plain, std::size_t most) {
  const std::size_t size = std::min(in_.size(), most - std::min(most, plain.size()));
  plain.append(in_, 0, size);
  in_.erase(0, size);
  return !in_.empty();
}

}  // namespace belljar::test
