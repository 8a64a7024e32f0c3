// Lets a std::unique_ptr own what a C library frees by a function of its own: std::unique_ptr<SSL, FreeWith<SSL_free>>.
#pragma once

namespace belljar {

template <auto free_one>
struct FreeWith {
  template <class T>
  void operator()(T* object) const noexcept {
    free_one(object);
  }
};

}  // namespace belljar
