package install

import (
	"slices"
	"testing"
	"time"

	"dsh/internal/trust"
)

func TestAge(t *testing.T) {
	now := time.Date(2026, 5, 10, 12, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	for _, c := range []struct {
		name   string
		min    time.Duration
		before time.Time // --before
		except []string
		want   time.Time
		age    time.Duration
		exempt []string // of 1.0.0, 2.0.0
		policy string
	}{
		{"no rule", 0, time.Time{}, nil, time.Time{}, 0, nil, ""},
		{"a date", 0, now.Add(-9 * day), []string{"a@1.0.0"}, now.Add(-9 * day), 0, nil, ""},
		{"a minimum age", 3 * day, time.Time{}, nil, now.Add(-3 * day), 3 * day, nil, ""},
		{"not of this package", 3 * day, time.Time{}, []string{"b", "@s/*", "a"}, time.Time{}, 0, nil, ""},
		{"not of one version", 3 * day, time.Time{}, []string{"a@1.0.0 || 1.0.1"}, now.Add(-3 * day), 3 * day, []string{"1.0.0"}, ""},
		{"an earlier date lets none through", 3 * day, now.Add(-9 * day), []string{"a@1.0.0"}, now.Add(-9 * day), 0, nil, ""},
		{"a later date", 3 * day, now.Add(-day), []string{"a@2.0.0"}, now.Add(-3 * day), 3 * day, []string{"2.0.0"}, ""},
		{"a policy", 0, time.Time{}, nil, now.Add(-5 * day), 5 * day, nil, "minimumAge: 5d"},
		{"a policy is not loosened", day, now.Add(-day), []string{"a"}, now.Add(-5 * day), 5 * day, nil, "minimumAge: 5d"},
		{"nor is it by an exception of one version", 9 * day, time.Time{}, []string{"a@1.0.0"}, now.Add(-9 * day), 9 * day, nil, "minimumAge: 5d"},
		{"a policy that is looser", 9 * day, time.Time{}, nil, now.Add(-9 * day), 9 * day, nil, "minimumAge: 5d"},
		{"a policy not of this package", day, time.Time{}, nil, now.Add(-day), day, nil, "minimumAge: 5d\nexempt: {minimumAge: [a]}"},
		{"a policy not of one version", 0, time.Time{}, nil, now.Add(-5 * day), 5 * day, []string{"1.0.0"}, "minimumAge: 5d\nexempt: {minimumAge: [a@1.0.0]}"},
		{"a version that both let through", 9 * day, time.Time{}, []string{"a@2.0.0"}, now.Add(-9 * day), 9 * day, []string{"2.0.0"}, "minimumAge: 5d\nexempt: {minimumAge: [a@2.0.0]}"},
	} {
		policy, err := trust.ParsePolicy("policy.yaml", []byte(c.policy))
		if err != nil {
			t.Fatal(err)
		}
		s := &sources{now: now, job: &Job{Policy: policy, Before: c.before, settings: Settings{MinAge: c.min, AgeExcept: c.except}}}
		got := s.age("a")
		var exempt []string
		for _, version := range []string{"1.0.0", "2.0.0"} {
			if got.Exempt != nil && got.Exempt(version, now.Add(-2*day)) {
				exempt = append(exempt, version)
			}
		}
		if !got.Before.Equal(c.want) || got.Age != c.age || !slices.Equal(exempt, c.exempt) {
			t.Errorf("%s: before %s, age %s, exempt %v", c.name, got.Before, got.Age, exempt)
		}
	}
}

func TestAgo(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Hour: "at a time that lies ahead", 0: "just now", 90 * time.Second: "1 minute ago", 5 * time.Hour: "5 hours ago", 615 * 24 * time.Hour: "615 days ago",
	} {
		if got := ago(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}
