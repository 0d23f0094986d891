// Package page is the files of the web page: HTML, style and modules as the browser gets them, with nothing built and nothing fetched
// from elsewhere. It is not the server, and knows nothing of profiles: what the page shows comes from the API of the profile.
package page

import (
	"embed"
	"io/fs"
)

//go:embed assets
var assets embed.FS

// Files are the files of the page by the paths under which the browser asks for them; index.html is the page itself.
var Files = func() fs.FS {
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // the name of the folder is no valid path
	}
	return files
}()
