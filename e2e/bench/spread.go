package main

import "slices"

// spread is what is told of some numbers.
type spread struct{ median, min, max float64 }

// spreadIn is the spread of at least one number.
func spreadIn(values []float64) spread {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	median := sorted[middle]
	if len(sorted)%2 == 0 {
		median = (sorted[middle-1] + sorted[middle]) / 2
	}
	return spread{median, sorted[0], sorted[len(sorted)-1]}
}

// spreadOf is the spread of one number of each sample.
func spreadOf(cell []sample, number func(sample) float64) spread {
	var values []float64
	for _, one := range cell {
		values = append(values, number(one))
	}
	return spreadIn(values)
}
