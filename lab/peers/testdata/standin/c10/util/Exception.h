// A stand-in for PyTorch's header of that name.
#pragma once

#include <stdexcept>

namespace c10 {

class OutOfMemoryError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace c10
