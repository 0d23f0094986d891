package npmtest

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Fault is a way to misbehave. It answers a request; good is the registry's own answer.
type Fault func(w http.ResponseWriter, r *http.Request, good http.Handler)

// Spoil lets fault answer every request whose path is one of those that match, until the next Spoil or Heal.
func (s *Server) Spoil(match func(path string) bool, fault Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spoiled, s.fault = match, fault
}

// Heal ends what Spoil began.
func (s *Server) Heal() { s.Spoil(nil, nil) }

// DocumentsOf matches the paths of a package's documents: about all versions, and about one.
func DocumentsOf(name string) func(path string) bool {
	return func(path string) bool {
		return path == "/"+name || strings.HasPrefix(path, "/"+name+"/") && !ArchivesOf(name)(path)
	}
}

// ArchivesOf matches the paths of a package's tarballs.
func ArchivesOf(name string) func(path string) bool {
	return func(path string) bool { return strings.HasPrefix(path, "/"+name+"/-/") }
}

// All matches every path.
func All(string) bool { return true }

// record is the registry's own answer, held back.
func record(r *http.Request, good http.Handler) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	good.ServeHTTP(answer, r)
	return answer
}

// head sends the head of an answer, with what is said about its length.
func head(w http.ResponseWriter, answer *httptest.ResponseRecorder, length int) {
	maps.Copy(w.Header(), answer.Header())
	w.Header().Set("Content-Length", strconv.Itoa(length))
	w.WriteHeader(answer.Code)
}

// send writes and lets it go out at once.
func send(w http.ResponseWriter, data []byte) error {
	if _, err := w.Write(data); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}

// Drip sends the good answer in so many pieces, with a pause before each.
func Drip(pieces int, pause time.Duration) Fault {
	return func(w http.ResponseWriter, r *http.Request, good http.Handler) {
		answer := record(r, good)
		body := answer.Body.Bytes()
		head(w, answer, len(body))
		for i := range pieces {
			time.Sleep(pause)
			if send(w, body[len(body)*i/pieces:len(body)*(i+1)/pieces]) != nil {
				return
			}
		}
	}
}

// Delay waits a random time of at most longest before each good answer, so that answers come in another order each time.
func Delay(longest time.Duration) Fault {
	return func(w http.ResponseWriter, r *http.Request, good http.Handler) {
		time.Sleep(rand.N(longest))
		good.ServeHTTP(w, r)
	}
}

// Stall sends half of the good answer, or nothing at all, and then no more.
func Stall(half bool) Fault {
	return func(w http.ResponseWriter, r *http.Request, good http.Handler) {
		if half {
			answer := record(r, good)
			body := answer.Body.Bytes()
			head(w, answer, len(body))
			_ = send(w, body[:len(body)/2])
		}
		<-r.Context().Done()
	}
}

// Drop closes the connection half-way through the good answer, the first so many times. Where ranges are served, a request for the rest gets
// it, half of it as well while the times are not used up.
func Drop(times int32, ranges bool) Fault {
	var dropped atomic.Int32
	return func(w http.ResponseWriter, r *http.Request, good http.Handler) {
		answer := record(r, good)
		body := answer.Body.Bytes()
		var from int
		if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from); err == nil && ranges && from < len(body) {
			answer.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(body)-1, len(body)))
			answer.Code = http.StatusPartialContent
			body = body[from:]
		}
		head(w, answer, len(body))
		if dropped.Add(1) <= times {
			_ = send(w, body[:len(body)/2])
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(body) // the client may have gone away
	}
}

// Refuse answers with a status, the first so many times.
func Refuse(times int32, status int, header ...string) Fault {
	var refused atomic.Int32
	return func(w http.ResponseWriter, r *http.Request, good http.Handler) {
		if refused.Add(1) > times {
			good.ServeHTTP(w, r)
			return
		}
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
	}
}

// Say answers 200 with the same body whatever is asked.
func Say(contentType, body string) Fault {
	return func(w http.ResponseWriter, r *http.Request, good http.Handler) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write([]byte(body)) // the client may have gone away
	}
}

// Rewrite sends the good answer with every old replaced by new.
func Rewrite(old, new string) Fault {
	return func(w http.ResponseWriter, r *http.Request, good http.Handler) {
		answer := record(r, good)
		body := []byte(strings.ReplaceAll(answer.Body.String(), old, new))
		head(w, answer, len(body))
		_, _ = w.Write(body) // the client may have gone away
	}
}

// Follow sends the good answer, and then a piece again and again until nobody listens.
func Follow(piece string) Fault {
	return func(w http.ResponseWriter, r *http.Request, good http.Handler) {
		answer := record(r, good)
		w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
		for err := send(w, answer.Body.Bytes()); err == nil && r.Context().Err() == nil; {
			_, err = w.Write([]byte(piece))
		}
	}
}

// InPlaceOf answers as if another path had been asked for.
func InPlaceOf(path string) Fault {
	return func(w http.ResponseWriter, r *http.Request, good http.Handler) {
		other := r.Clone(r.Context())
		other.URL.Path = path
		good.ServeHTTP(w, other)
	}
}

// CutGzip sends the good answer compressed, and of that only the first half, as if it were all.
func CutGzip() Fault {
	return func(w http.ResponseWriter, r *http.Request, good http.Handler) {
		answer := record(r, good)
		packed := compress(answer.Body.Bytes())
		answer.Header().Set("Content-Encoding", "gzip")
		head(w, answer, len(packed)/2)
		_ = send(w, packed[:len(packed)/2])
	}
}

// Endless sends a beginning, and then a piece again and again until nobody listens. Where packed is true all of it is compressed, each piece
// to a small part of its size.
func Endless(contentType, beginning, piece string, packed bool) Fault {
	first, next := []byte(beginning), []byte(piece)
	if packed {
		first, next = compress(first), compress(next)
	}
	return func(w http.ResponseWriter, r *http.Request, good http.Handler) {
		w.Header().Set("Content-Type", contentType)
		if packed {
			w.Header().Set("Content-Encoding", "gzip")
		}
		for err := send(w, first); err == nil && r.Context().Err() == nil; {
			_, err = w.Write(next)
		}
	}
}

// Redirect sends whoever asks to another address; the path is added to one that ends with a slash.
func Redirect(to string) Fault {
	return func(w http.ResponseWriter, r *http.Request, good http.Handler) {
		address := to
		if strings.HasSuffix(to, "/") {
			address += strings.TrimPrefix(r.URL.Path, "/")
		}
		w.Header().Set("Location", address)
		w.WriteHeader(http.StatusFound)
	}
}

// WrongLength sends the good answer with a Content-Length that is wrong by so many bytes. Too small a one needs HTTP/1.1.
func WrongLength(by int) Fault {
	return func(w http.ResponseWriter, r *http.Request, good http.Handler) {
		answer := record(r, good)
		body := answer.Body.Bytes()
		if by > 0 {
			head(w, answer, len(body)+by)
			_ = send(w, body)
			panic(http.ErrAbortHandler)
		}
		var raw bytes.Buffer
		fmt.Fprintf(&raw, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", answer.Header().Get("Content-Type"), len(body)+by)
		raw.Write(body)
		speak(w, raw.Bytes())
	}
}

// Raw sends bytes that may be no HTTP at all, over HTTP/1.1, and closes the connection.
func Raw(text string) Fault {
	return func(w http.ResponseWriter, r *http.Request, good http.Handler) { speak(w, []byte(text)) }
}

// speak takes the connection over and ends it after data.
func speak(w http.ResponseWriter, data []byte) {
	conn, _, err := http.NewResponseController(w).Hijack()
	must(err)
	_, _ = conn.Write(data) // the client may have gone away
	_ = conn.Close()
}
