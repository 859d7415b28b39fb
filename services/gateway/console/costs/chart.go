package costs

import (
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/bars"
)

// lowest is the least amount of the highest line: half of it is a cent.
const lowest = 0.02

// Chart has a bar for each day.
type Chart struct {
	Bars []Bar
	// Lines are the amounts that are drawn as lines, the highest first; none if nothing was spent.
	Lines []Line
	// Marks are the days that are named below the chart.
	Marks []Mark
	// Foot is where the line of zero is, in pixels from the top, and Height
	// that of the whole drawing.
	Foot, Height float64
	// Highest is the most expensive day; nil if nothing was spent.
	Highest *Bar
}

// Bar is a day.
type Bar struct {
	Day   time.Time
	USD   float64
	Calls int64
	// X and Width are in percent of the chart's width, Y and Height in pixels.
	// A day on which anything was spent has a height that can be seen.
	X, Width, Y, Height float64
}

// Line is an amount that is drawn across the chart. Y is in pixels.
type Line struct{ USD, Y float64 }

// Label names the amount beside its line, where there is little room.
func (l Line) Label() string { return strings.TrimSuffix(USD(l.USD), ".00") }

// Mark names a day below its bar. X is in percent, and Anchor as SVG has it: start, middle or end.
type Mark struct {
	Day    time.Time
	X      float64
	Anchor string
}

// Days makes a chart of the days from one to another, both included. Rows that are not about
// one of them are left out; an amount that is none, below zero or infinite, has no height.
func Days(rows []document.CostRow, from, to time.Time) Chart {
	c := Chart{Foot: bars.Top + bars.Height, Height: bars.Top + bars.Height + bars.Below}
	n := int(to.Sub(from)/(24*time.Hour)) + 1
	if n < 1 || n > 10*Longest {
		return c
	}
	by := make(map[string]*document.CostRow, len(rows))
	for i := range rows {
		by[rows[i].Key] = &rows[i]
	}
	step, most := 100/float64(n), 0.0
	for i := range n {
		b := Bar{Day: from.AddDate(0, 0, i), X: (float64(i) + 0.1) * step, Width: 0.8 * step, Y: c.Foot}
		if row := by[b.Day.Format(time.DateOnly)]; row != nil {
			b.USD, b.Calls = row.CostUSD, row.Calls
		}
		c.Bars = append(c.Bars, b)
		most = max(most, bars.Drawn(b.USD))
	}
	c.Marks = marks(c.Bars)
	if most == 0 {
		return c
	}
	top := max(bars.Round(most), lowest)
	c.Lines = []Line{{top, bars.Top}, {top / 2, bars.Top + bars.Height/2}}
	for i := range c.Bars {
		b := &c.Bars[i]
		amount := bars.Drawn(b.USD)
		if amount == 0 {
			continue
		}
		b.Height = bars.Tall(amount, top)
		b.Y = c.Foot - b.Height
		if amount == most {
			c.Highest = b
		}
	}
	return c
}

// marks names the first day, the one in the middle and the last: there is room
// for three on a phone.
func marks(list []Bar) []Mark {
	last := len(list) - 1
	at := func(i int) float64 { return list[i].X + list[i].Width/2 }
	named := []Mark{{list[0].Day, list[0].X, "start"}}
	if last > 2 {
		named = append(named, Mark{list[last/2].Day, at(last / 2), "middle"})
	}
	if last > 0 {
		named = append(named, Mark{list[last].Day, list[last].X + list[last].Width, "end"})
	}
	return named
}
