#include "models/gradient_place.h"

namespace zero {

c10::intrusive_ptr<GradientPlace> GradientPlace::put_on(const at::Tensor& leaf) {
  auto place = c10::make_intrusive<GradientPlace>();
  leaf.unsafeGetTensorImpl()->set_backend_meta(place);
  return place;
}

GradientPlace* GradientPlace::open_on(const at::Tensor& leaf) {
  auto* place = dynamic_cast<GradientPlace*>(leaf.unsafeGetTensorImpl()->get_backend_meta());
  return place && place->sum_.defined() ? place : nullptr;
}

}  // namespace zero
