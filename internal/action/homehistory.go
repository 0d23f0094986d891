package action

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"dsh/internal/profile"
	"dsh/internal/staging"
)

// homeLayer are the names of the home's own small files, which have a history
// like a profile's.
var homeLayer = []string{".env", "cordis.patch.yml"}

// homeFiles is those of them that are there.
func homeFiles(home profile.Home) ([]staging.SavedFile, error) {
	var files []staging.SavedFile
	for _, name := range homeLayer {
		info, err := os.Stat(home.Path(name))
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue // no history holds a pipe, as which some programs give an .env
		}
		if err != nil {
			return nil, err
		}
		data, err := profile.ReadFile(home.Path(name))
		if err != nil {
			return nil, err
		}
		files = append(files, staging.SavedFile{Path: name, Mode: info.Mode().Perm(), Data: data})
	}
	return files, nil
}

// inHomeHistory runs a change of the home's files, and keeps the states before
// and after it. The caller has the lock of these files.
func (env Env) inHomeHistory(ctx context.Context, change func() error) error {
	history := staging.OpenHistory(env.Home.HistoryDir())
	save := func(command string) error {
		files, err := homeFiles(env.Home)
		if err == nil {
			_, _, err = history.Save(ctx, files, command, time.Now()) // the clock of the profiles' histories too
		}
		return err
	}
	// What was found, edited by hand perhaps, can be had back.
	if err := save(""); err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	return save(env.options().Command)
}
