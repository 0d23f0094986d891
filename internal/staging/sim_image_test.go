package staging

import (
	"testing"
	"testing/synctest"
)

// The same in a container whose image has the profile.
func TestPowerLossInImage(t *testing.T) {
	for _, sc := range simScenarios {
		t.Run(sc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { sc.losePower(t, simOptions{image: true}) })
		})
	}
}
