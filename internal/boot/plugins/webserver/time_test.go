package webserver

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener whose connections are in memory, so that its time can be
// that of a test.
type pipes struct {
	incoming chan net.Conn
	closed   chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.incoming:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p pipes) Close() error   { close(p.closed); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// inTime runs a test in a time of its own, with a server and a way to connect
// to it.
func inTime(t *testing.T, test func(t *testing.T, s *server, dial func() net.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		listener := pipes{make(chan net.Conn), make(chan struct{})}
		s := newServer(netip.MustParseAddrPort("127.0.0.1:80"), "the-token", t.Logf)
		go s.http.Serve(listener)
		test(t, s, func() net.Conn {
			ours, theirs := net.Pipe()
			listener.incoming <- theirs
			t.Cleanup(func() { ours.Close() })
			return ours
		})
		s.stop(t.Context())
	})
}

const head = "Host: 127.0.0.1\r\n" + bearer + "\r\n"

func TestHeadersHaveToCome(t *testing.T) {
	inTime(t, func(t *testing.T, s *server, dial func() net.Conn) {
		conn, start := dial(), time.Now()
		io.WriteString(conn, "GET / HT")
		if _, err := io.ReadAll(conn); err != nil || time.Since(start) != patience {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
	})
}

func TestConnectionsAreNotKeptForEver(t *testing.T) {
	inTime(t, func(t *testing.T, s *server, dial func() net.Conn) {
		s.Handle("/", answer200("x"))
		conn, start := dial(), time.Now()
		io.WriteString(conn, "GET / HTTP/1.1\r\n"+head+"\r\n")
		if text, err := io.ReadAll(conn); err != nil || !strings.Contains(string(text), "200 OK") || time.Since(start) != idle {
			t.Errorf("after %s: %s, %v", time.Since(start), text, err)
		}
	})
}

func TestBodiesHaveToCome(t *testing.T) {
	inTime(t, func(t *testing.T, s *server, dial func() net.Conn) {
		read := make(chan error, 1)
		s.Handle("/", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(r.Body)
			read <- err
		}))
		conn, start := dial(), time.Now()
		go io.Copy(io.Discard, conn)
		io.WriteString(conn, "POST / HTTP/1.1\r\n"+head+"Content-Length: 10\r\n\r\nx")
		err := <-read
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() || time.Since(start) != patience {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
	})
}

func TestBodiesOfStrangersHaveToCome(t *testing.T) {
	inTime(t, func(t *testing.T, s *server, dial func() net.Conn) {
		conn, start := dial(), time.Now()
		go io.WriteString(conn, "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\nx")
		if text, err := io.ReadAll(conn); err != nil || !strings.Contains(string(text), "401") || time.Since(start) > patience+idle {
			t.Errorf("after %s: %s, %v", time.Since(start), text, err)
		}
	})
}

// A body that came in time does not bound what is done with it.
func TestWorkMayTakeLongerThanItsBody(t *testing.T) {
	inTime(t, func(t *testing.T, s *server, dial func() net.Conn) {
		s.Handle("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if text, err := io.ReadAll(r.Body); err != nil || string(text) != "body" {
				t.Errorf("got %s, %v", text, err)
			}
			select {
			case <-r.Context().Done():
				t.Error("the request ends early")
			case <-time.After(time.Hour):
			}
			io.WriteString(w, "done")
		}))
		conn := dial()
		go io.WriteString(conn, "POST / HTTP/1.1\r\n"+head+"Content-Length: 4\r\nConnection: close\r\n\r\nbody")
		if text, err := io.ReadAll(conn); err != nil || !strings.HasSuffix(string(text), "done") {
			t.Errorf("got %s, %v", text, err)
		}
	})
}

func TestAnswersHaveToBeTaken(t *testing.T) {
	inTime(t, func(t *testing.T, s *server, dial func() net.Conn) {
		written := make(chan error, 1)
		s.Handle("/", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, err := w.Write(make([]byte, 1<<20))
			written <- err
		}))
		conn, start := dial(), time.Now()
		io.WriteString(conn, "GET / HTTP/1.1\r\n"+head+"\r\n")
		if err := <-written; err == nil || time.Since(start) != patience {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
	})
}

func TestStreamsMayBeSilent(t *testing.T) {
	inTime(t, func(t *testing.T, s *server, dial func() net.Conn) {
		next := make(chan string)
		s.Handle("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for {
				select {
				case <-r.Context().Done():
					return
				case text := <-next:
					io.WriteString(w, text)
					if err := http.NewResponseController(w).Flush(); err != nil {
						t.Error(err)
					}
				}
			}
		}))
		conn := dial()
		go io.WriteString(conn, "GET / HTTP/1.1\r\n"+head+"\r\n")
		lines := bufio.NewScanner(conn)
		for _, text := range []string{"data: first\n", "data: second\n"} {
			time.Sleep(time.Hour)
			go func() { next <- text }()
			for lines.Scan() && lines.Text()+"\n" != text {
			}
			if lines.Err() != nil || lines.Text()+"\n" != text {
				t.Fatalf("got %q, %v", lines.Text(), lines.Err())
			}
		}
	})
}

// Who has not asked for anything, or may not, does not hold up a stop; who is
// being answered does, and gets the whole of the answer.
func TestStopWaitsForAnswersAlone(t *testing.T) {
	for name, request := range map[string]string{
		"nothing":                 "",
		"a part of a head":        "GET / HT",
		"a stranger without body": "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\nx",
		"a second request begun":  "GET /quick HTTP/1.1\r\n" + head + "\r\nGET / HT",
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(t *testing.T, s *server, dial func() net.Conn) {
				s.Handle("/quick", answer200("quick"))
				s.Handle("/slow", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					time.Sleep(time.Second)
					io.WriteString(w, strings.Repeat("slow", 10000))
				}))
				conn := dial()
				go io.Copy(io.Discard, conn)
				go io.WriteString(conn, request)
				synctest.Wait()
				start := time.Now()
				slow, answer := dial(), make(chan string)
				go io.WriteString(slow, "GET /slow HTTP/1.1\r\n"+head+"\r\n")
				go func() {
					text, _ := io.ReadAll(slow)
					answer <- string(text)
				}()
				synctest.Wait()
				// The server looks in ever longer spaces whether all is done.
				if err := s.stop(t.Context()); err != nil || time.Since(start) > 2*time.Second {
					t.Errorf("it stops after %s: %v", time.Since(start), err)
				}
				if text := <-answer; strings.Count(text, "slow") != 10000 || !strings.HasSuffix(text, "\r\n0\r\n\r\n") {
					t.Errorf("the answer has %d bytes: %.200s", len(text), text)
				}
			})
		})
	}
}
