package runtimes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"dsh/internal/fault"
	"dsh/internal/profile"
	"dsh/internal/staging"
)

// choiceFile is the file in a profile's state with the name of its installation.
const choiceFile = "installation"

// asideSuffix ends the name of the file with the choice of a removed profile.
const asideSuffix = ".removed"

// ChoicePath is the file with the name of the installation that a profile runs
// on; of no profile, that of all profiles without a choice of their own.
func ChoicePath(home profile.Home, name *profile.Name) string {
	if name == nil {
		return home.Path("default-installation")
	}
	return filepath.Join(home.StateDir(home.Real(*name)), choiceFile)
}

// ReadChoice is the name in a file of [ChoicePath], or [Embedded]; "" where
// nothing was chosen.
func ReadChoice(file string) (string, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the chosen installation: %w", err)
	}
	chosen := strings.TrimSpace(string(text))
	if chosen == Embedded {
		return chosen, nil
	}
	if _, err := ParseName(chosen); err != nil {
		return "", fault.WithHint(fault.Errorf(fault.Environment, "%s does not hold the name of an installation", file), "dsh installation use NAME writes it again")
	}
	return chosen, nil
}

// WriteChoice makes chosen what [ReadChoice] returns; "" takes the choice away.
func WriteChoice(file, chosen string) error {
	if chosen == "" {
		if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return staging.RemoveAll(file)
	}
	if err := staging.MkdirAll(filepath.Dir(file)); err != nil {
		return err
	}
	_, err := staging.WriteFileIfChanged(file, []byte(chosen+"\n"), 0o644)
	return err
}

// CopyChoice makes the choice of one file that of another.
func CopyChoice(from, to string) error {
	chosen, err := ReadChoice(from)
	if err != nil {
		chosen = "" // it says nothing
	}
	return WriteChoice(to, chosen)
}

// MoveChoice makes the choice of one file that of another, which loses its own.
// Both may be one, as where the case of letters does not count.
func MoveChoice(from, to string) error {
	if err := CopyChoice(from, to); err != nil {
		return err
	}
	was, err := os.Stat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("moving the chosen installation: %w", err)
	}
	if is, err := os.Stat(to); err == nil && os.SameFile(was, is) {
		return nil
	}
	return WriteChoice(from, "")
}

// SetChoiceAside keeps the choice of a profile that was removed where a new one of
// its name does not find it. What was kept of an earlier one goes.
func SetChoiceAside(home profile.Home, name profile.Name) error {
	file := ChoicePath(home, &name)
	return MoveChoice(file, file+asideSuffix)
}

// BringChoiceBack gives a profile that was removed, and is there again, the choice
// that it had.
func BringChoiceBack(home profile.Home, name profile.Name) error {
	file := ChoicePath(home, &name)
	return MoveChoice(file+asideSuffix, file)
}
