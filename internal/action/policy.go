package action

import (
	"context"
	"errors"
	"path/filepath"

	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/install/store"
	"dsh/internal/install/unpack"
	"dsh/internal/profile"
	"dsh/internal/staging"
	"dsh/internal/trust"
)

// policy is what packages are held against; nil is that there is none.
func (env Env) policy() (*trust.Policy, error) {
	return trust.ReadPolicy(env.Home.Path(trust.PolicyName))
}

// limit sets the limits of a policy for what is unpacked into a store.
func limit(packages *store.Store, policy *trust.Policy) {
	if policy != nil {
		packages.Limits = unpack.Limits(policy.Limits)
	}
}

// limited says of an error about a limit who set that.
func limited(policy *trust.Policy, err error) error {
	if _, beyond := errors.AsType[*unpack.LimitError](err); beyond && policy != nil && policy.Limits != (trust.Limits{}) {
		return fault.WithHint(err, "the limits are those of %s, line %d", policy.File, policy.LimitsLine())
	}
	return err
}

// PolicyReport says what the policy is, and whether a profile keeps it.
type PolicyReport struct {
	File    string        `json:"file"`
	Exists  bool          `json:"exists"`
	Policy  *trust.Policy `json:"policy"`
	Profile string        `json:"profile"`
	Dir     string        `json:"dir"`
	// Packages is how many packages were looked at.
	Packages   int              `json:"packages"`
	Violations trust.Violations `json:"violations"`
	Warnings   []string         `json:"-"`
}

// Policy holds all packages of a profile against the policy. It changes nothing
// but what is remembered of registries, which are asked where a rule needs it.
func Policy(ctx context.Context, env Env, opts PluginOptions) (report *PolicyReport, err error) {
	report = &PolicyReport{File: env.Home.Path(trust.PolicyName), Profile: opts.Name.String(), Violations: trust.Violations{}}
	if report.Policy, err = env.policy(); err != nil {
		return nil, err
	}
	report.Exists = report.Policy != nil
	type locked struct {
		*profile.Profile
		lock *install.Lock
	}
	now, warnings, err := reading(ctx, env, opts.Name, func(v staging.View) (locked, error) {
		p, lock, err := env.lockedProfile(v, opts.Name)
		return locked{p, lock}, err
	})
	if err != nil {
		return nil, err
	}
	report.Dir, report.Warnings = now.Dir, warnings
	if now.lock == nil {
		return report, nil
	}
	client, err := env.client(opts, now.Dir)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	packages := store.Open(env.Home.StoreDir())
	defer func() { err = errors.Join(err, packages.Close()) }()
	job := env.job(opts, now.Profile)
	job.Policy, job.Registry, job.Store = report.Policy, client, packages
	job.Closure = filepath.Join(env.Home.Place(opts.Name).State, closureName)
	held, err := job.Hold(ctx, now.lock)
	if err != nil {
		return nil, err
	}
	report.Violations, report.Packages = append(report.Violations, held.Violations...), held.Packages
	report.Warnings = append(report.Warnings, held.Warnings...)
	return report, nil
}
