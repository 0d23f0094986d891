package compose

import (
	"net/url"
	"path"
	"strings"
)

// fileURL is the file URL of a row name that is a path: absolute, or relative
// to dir and written with ./ or ../ in front. Other names are no paths. The
// form of dir and name tells whose paths they are, so that the result does not
// depend on where it is computed.
func fileURL(dir, name string) (string, bool) {
	windows := isWindows(dir)
	slashed := name
	if windows {
		slashed = strings.ReplaceAll(name, `\`, "/")
	}
	switch {
	case isDrive(name) || strings.HasPrefix(name, `\\`):
		return windowsURL(name), true
	case strings.HasPrefix(slashed, "./") || strings.HasPrefix(slashed, "../"):
		if windows {
			return windowsURL(dir + "/" + name), true
		}
		return "file://" + escapePath(cleanPath(dir+"/"+name)), true
	case strings.HasPrefix(slashed, "/"):
		if windows {
			return windowsURL(volume(dir) + name), true
		}
		return "file://" + escapePath(cleanPath(name)), true
	default:
		return "", false
	}
}

// FilePath is the path that a file URL stands for; ok is false for what is no
// file URL. Its form is that of the system whose path the URL names.
func FilePath(address string) (file string, ok bool) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "file" || u.Opaque != "" {
		return "", false
	}
	backslashed := strings.ReplaceAll(u.Path, "/", `\`)
	switch {
	case u.Host != "" && u.Host != "localhost":
		return `\\` + u.Host + backslashed, true
	case u.Path != "" && isDrive(u.Path[1:]):
		return backslashed[1:], true
	default:
		return u.Path, true
	}
}

// isDrive says whether name begins with a drive, as in C:\dir or c:/dir.
func isDrive(name string) bool {
	return len(name) > 2 && name[1] == ':' && (name[2] == '\\' || name[2] == '/') && isLetter(name[0])
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// volume is the drive of dir, or the share it is on.
func volume(dir string) string {
	if isDrive(dir) {
		return dir[:2]
	}
	parts := strings.SplitN(strings.ReplaceAll(dir[2:], `\`, "/"), "/", 3)
	return `\\` + strings.Join(parts[:min(2, len(parts))], `\`)
}

// windowsURL is the URL of an absolute path of Windows: file:///C:/dir, or
// file://server/share/dir.
func windowsURL(name string) string {
	name = strings.ReplaceAll(name, `\`, "/")
	name = strings.TrimPrefix(name, "//?/")
	if isDrive(name) {
		return "file:///" + name[:2] + escapePath(cleanPath(name[2:]))
	}
	server, rest, _ := strings.Cut(strings.TrimLeft(name, "/"), "/")
	return "file://" + server + escapePath(cleanPath("/"+rest))
}

// cleanPath resolves . and .. and keeps a slash at the end, as Node.js does.
func cleanPath(name string) string {
	clean := path.Clean(name)
	if strings.HasSuffix(name, "/") && clean != "/" {
		clean += "/"
	}
	return clean
}

// escapePath writes in percent what Node's pathToFileURL does.
func escapePath(name string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c <= ' ' || c >= 0x7F || strings.IndexByte("\"#%<>?[\\]^`{|}~", c) >= 0 {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
