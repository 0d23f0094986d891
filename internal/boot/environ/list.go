package environ

// List is the variables as "NAME=value", for a child process: those of the
// process in its order, then what the files added.
func (s Snapshot) List() []string {
	list := make([]string, 0, len(s.variables))
	for _, v := range s.variables {
		list = append(list, v.Name+"="+v.Value)
	}
	return list
}
