package profile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"dsh/internal/fault"
	"dsh/internal/staging"
)

// ChosenPath is the file with the name of the profile that commands act on when
// nothing names one. It is there when the user chose one.
func (h Home) ChosenPath() string { return h.Path("default-profile") }

// Chosen is the profile that the user chose for commands that name none; ok is
// false where there is no choice. Whether the profile exists is not looked at,
// but where the choice moves to another name, see [ChooseMoving].
func Chosen(home Home) (name Name, ok bool, err error) {
	path := home.ChosenPath()
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Name{}, false, nil
	}
	if err != nil {
		return Name{}, false, fmt.Errorf("reading the chosen profile from %s: %w", path, reason(err))
	}
	lines := strings.Split(strings.TrimSuffix(strings.TrimPrefix(string(text), "\ufeff"), "\n"), "\n")
	names := make([]Name, len(lines))
	for i, line := range lines {
		if names[i], err = ParseName(strings.TrimSuffix(line, "\r")); err != nil || len(lines) > 2 {
			return Name{}, false, fault.WithHint(fault.Errorf(fault.Other, "%s does not hold the name of a profile and a newline", path),
				"dsh profile use NAME writes it again, dsh profile use --unset takes it away")
		}
	}
	if _, err := os.Lstat(home.ProfileDir(names[0])); err == nil {
		return names[0], true, nil
	}
	return names[len(names)-1], true, nil
}

// Choose makes name what [Chosen] returns.
func Choose(home Home, name Name) error {
	if err := staging.MkdirAll(home.Dir()); err != nil {
		return err
	}
	_, err := staging.WriteFileIfChanged(home.ChosenPath(), []byte(name.text+"\n"), filePerm)
	return err
}

// ChooseMoving makes [Chosen] return from as long as there is a profile of that
// name, and then to. It is for the time in which from is renamed: whenever that
// ends, the choice is right.
func ChooseMoving(home Home, from, to Name) error {
	return staging.WriteFile(home.ChosenPath(), []byte(from.text+"\n"+to.text+"\n"), filePerm)
}

// Unchoose forgets the choice and reports whether there was one.
func Unchoose(home Home) (bool, error) {
	if _, err := os.Lstat(home.ChosenPath()); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return true, staging.RemoveAll(home.ChosenPath())
}
