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
// false where there is no choice. Whether the profile exists is not looked at.
func Chosen(home Home) (name Name, ok bool, err error) {
	path := home.ChosenPath()
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Name{}, false, nil
	}
	if err != nil {
		return Name{}, false, fmt.Errorf("reading the chosen profile from %s: %w", path, reason(err))
	}
	line := strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(string(text), "\ufeff"), "\n"), "\r")
	if name, err = ParseName(line); err != nil || strings.Contains(line, "\n") {
		return Name{}, false, fault.WithHint(fault.Errorf(fault.Other, "%s does not hold the name of a profile and a newline", path),
			"dsh profile use NAME writes it again, dsh profile use --unset takes it away")
	}
	return name, true, nil
}

// Choose makes name what [Chosen] returns.
func Choose(home Home, name Name) error {
	if err := staging.MkdirAll(home.Dir()); err != nil {
		return err
	}
	_, err := staging.WriteFileIfChanged(home.ChosenPath(), []byte(name.text+"\n"), filePerm)
	return err
}

// Unchoose forgets the choice and reports whether there was one.
func Unchoose(home Home) (bool, error) {
	if _, err := os.Lstat(home.ChosenPath()); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return true, staging.RemoveAll(home.ChosenPath())
}
