#include "plugins/shader/curve.h"

#include <algorithm>
#include <cmath>

namespace heddle::shader {
namespace {

struct CurvePoint {
  double x, y;
};

double coordinate(const Value& value) {
  if (value.is(HEDDLE_KIND_INT) || value.is(HEDDLE_KIND_UINT) || value.is(HEDDLE_KIND_FLOAT))
    if (const auto number = value.as<double>(); std::isfinite(number)) return number;
  throw Error(HEDDLE_INVALID_ARGUMENT, "curves: a point has to be two numbers. Link a CURVE.");
}

std::vector<CurvePoint> points_of(const Value& curve) {
  const Value given = curve.field("points");
  if (!given.is(HEDDLE_KIND_LIST) || given.count() == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT, "curves: the curve has no points. Link a CURVE.");
  std::vector<CurvePoint> points;
  for (std::uint32_t i = 0; i < given.count(); ++i) {
    const Value pair = given.item(i);
    if (!pair.is(HEDDLE_KIND_LIST) || pair.count() != 2) coordinate(Value());
    points.push_back({coordinate(pair.item(0)), coordinate(pair.item(1))});
  }
  std::ranges::stable_sort(points, {}, &CurvePoint::x);
  return points;
}

// Of the lines between points; 0 where two have the same x.
std::vector<double> slopes_of(const std::vector<CurvePoint>& points) {
  std::vector<double> slopes;
  for (std::size_t i = 0; i + 1 < points.size(); ++i) {
    const double width = points[i + 1].x - points[i].x;
    slopes.push_back(width == 0 ? 0 : (points[i + 1].y - points[i].y) / width);
  }
  return slopes;
}

// So that the curve rises and falls as its points do.
std::vector<double> tangents_of(const std::vector<double>& slopes) {
  std::vector<double> tangents(slopes.size() + 1);
  tangents.front() = slopes.front();
  tangents.back() = slopes.back();
  for (std::size_t i = 1; i < slopes.size(); ++i)
    tangents[i] = slopes[i - 1] * slopes[i] <= 0 ? 0 : (slopes[i - 1] + slopes[i]) / 2;
  for (std::size_t i = 0; i < slopes.size(); ++i) {
    if (slopes[i] == 0) {
      tangents[i] = tangents[i + 1] = 0;
      continue;
    }
    const double alpha = tangents[i] / slopes[i], beta = tangents[i + 1] / slopes[i];
    const double size = alpha * alpha + beta * beta;
    if (size <= 9) continue;
    tangents[i] = 3 / std::sqrt(size) * alpha * slopes[i];
    tangents[i + 1] = 3 / std::sqrt(size) * beta * slopes[i];
  }
  return tangents;
}

}  // namespace

std::vector<float> curve_table(const Value& given, std::size_t count) {
  const Value curve = given.has("__value__") ? given.field("__value__") : given;
  const std::vector<CurvePoint> points = points_of(curve);
  const std::vector<double> slopes = slopes_of(points);
  const bool is_linear = curve.get<std::string>("interpolation", "monotone_cubic") == "linear";
  const std::vector<double> tangents =
      slopes.empty() || is_linear ? std::vector<double>() : tangents_of(slopes);
  std::vector<float> table;
  for (std::size_t n = 0; n < count; ++n) {
    const double x = double(n) / double(count - 1);
    double y = x <= points.front().x ? points.front().y : points.back().y;
    if (x > points.front().x && x < points.back().x) {
      std::size_t i = 0;
      while (x > points[i + 1].x) ++i;
      const double width = points[i + 1].x - points[i].x, t = (x - points[i].x) / width;
      y = is_linear ? points[i].y + t * (points[i + 1].y - points[i].y)
                    : (2 * t * t * t - 3 * t * t + 1) * points[i].y +
                          (t * t * t - 2 * t * t + t) * width * tangents[i] +
                          (3 * t * t - 2 * t * t * t) * points[i + 1].y +
                          (t * t * t - t * t) * width * tangents[i + 1];
    }
    table.push_back(float(y));
  }
  return table;
}

}  // namespace heddle::shader
