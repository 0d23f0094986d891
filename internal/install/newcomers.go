package install

// Newcomer is a package of a registry that node_modules does not hold yet.
type Newcomer struct {
	Name, Version string
	lock          *Lock
}

// Chain is one way from the profile to the package, as messages write it.
func (n Newcomer) Chain() string {
	for _, name := range sortedKeys(n.lock.Wanted) {
		var found string
		n.lock.reach(name, func(at string, chain func() []string) {
			if p := n.lock.Nodes[at]; found == "" && p.Name == n.Name && p.Version == n.Version {
				found = fromProfile(chain()...)
			}
		})
		if found != "" {
			return found
		}
	}
	return "the profile"
}

// admit asks [Job.Admit] about what a lock has and node_modules has not, each
// version once, in order.
func (j *Job) admit(lock *Lock) (warnings []string, err error) {
	if j.Admit == nil || lock == j.present.lock {
		return nil, nil
	}
	known := map[[2]string]bool{}
	if j.present.lock != nil {
		for _, n := range j.present.lock.Nodes {
			if n.Origin.Kind == Registry {
				known[[2]string{n.Name, n.Version}] = true
			}
		}
	}
	var list []Newcomer
	for _, at := range sortedKeys(lock.Nodes) {
		n := lock.Nodes[at]
		if key := [2]string{n.Name, n.Version}; n.Origin.Kind == Registry && !known[key] {
			known[key] = true
			list = append(list, Newcomer{n.Name, n.Version, lock})
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	return j.Admit(list)
}
