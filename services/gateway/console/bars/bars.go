// Package bars has the measures that the bar charts of the console share. It is pure.
//
// Packages costs and health of the console compute the heights and scales of their charts with it.
// Any value above zero has a bar that can be seen, and a value that is no number is drawn as zero.
package bars

import "math"

// Height is that of a chart, in pixels, from the line of the highest value to
// that of zero, Top the room above it, and Below that for names.
const (
	Height = 140.0
	Top    = 10.0
	Below  = 20.0
)

// Round returns the next of 1, 2, 5 and 10 times a power of ten that is not
// below a value above zero: where the highest line is.
func Round(value float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(value)))
	for _, n := range []float64{1, 2, 5, 10} {
		if top := n * power; top >= value && !math.IsInf(top, 0) {
			return top
		}
	}
	return value // it is as large, or as small, as numbers get
}

// Drawn returns a value as far as it can be drawn: 0 for one that is none, below zero or infinite.
func Drawn(value float64) float64 {
	if math.IsNaN(value) || math.IsInf(value, 0) || value < 0 {
		return 0
	}
	return value
}

// Tall returns the height of a value where top is that of the highest line, in
// pixels. Any value above zero has one that can be seen.
func Tall(value, top float64) float64 {
	if value = Drawn(value); value == 0 || top <= 0 {
		return 0
	}
	return min(max(1, value/top*Height), Height)
}
