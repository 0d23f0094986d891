package profileapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"

	"dsh/internal/action"
	"dsh/internal/fault"
	"dsh/internal/profile"
	"dsh/internal/staging"
)

// maxBody is how many bytes the body of a request has at most.
const maxBody = 2 << 20

// endpoint answers a request with what becomes JSON.
type endpoint func(r *http.Request) (any, error)

// status is an answer with another status than 200.
type status struct {
	code  int
	value any
}

// routes are the endpoints by path and method.
type routes map[string]map[string]http.HandlerFunc

// read adds an endpoint that changes nothing.
func (rs routes) read(pattern string, e endpoint) { rs.add(http.MethodGet, pattern, answering(e)) }

func (rs routes) add(method, pattern string, h http.HandlerFunc) {
	if rs[pattern] == nil {
		rs[pattern] = map[string]http.HandlerFunc{}
	}
	rs[pattern][method] = h
}

// post adds an endpoint that takes a body.
func post[T any](rs routes, pattern string, e func(r *http.Request, body T) (any, error)) {
	rs.add(http.MethodPost, pattern, answering(func(r *http.Request) (any, error) {
		var body T
		if err := decode(r, &body); err != nil {
			return nil, err
		}
		return e(r, body)
	}))
}

// handler serves the routes. Whatever it answers is JSON.
func (rs routes) handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, methods := range rs {
		allowed := strings.Join(slices.Sorted(maps.Keys(methods)), ", ")
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			method := r.Method
			if method == http.MethodHead {
				method = http.MethodGet
			}
			if h, ok := methods[method]; ok {
				h(w, r)
				return
			}
			w.Header().Set("Allow", allowed)
			writeError(w, &failure{code: http.StatusMethodNotAllowed, message: "this address takes " + allowed})
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The mux would answer what is no clean path with a redirect.
		escaped := r.URL.EscapedPath()
		if _, pattern := mux.Handler(r); pattern == "" || path.Clean(escaped) != escaped {
			writeError(w, notFound("the interface has nothing at %s", r.URL.Path))
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func answering(e endpoint) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		value, err := e(r)
		if err != nil {
			writeError(w, err)
			return
		}
		code := http.StatusOK
		if s, ok := value.(status); ok {
			code, value = s.code, s.value
		}
		writeJSON(w, code, value)
	}
}

func writeJSON(w http.ResponseWriter, code int, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		code = http.StatusInternalServerError
		text, _ = json.Marshal(map[string]problem{"error": {Message: "write the answer: " + err.Error(), Class: fault.Other.String()}})
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(text, '\n')) // who is gone needs no answer
}

// merged is one JSON object with the members of several.
func merged(objects ...any) (json.RawMessage, error) {
	all := []byte{'{'}
	for _, o := range objects {
		text, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		members := bytes.TrimSuffix(bytes.TrimPrefix(text, []byte("{")), []byte("}"))
		if len(members) > 0 && len(all) > 1 {
			all = append(all, ',')
		}
		all = append(all, members...)
	}
	return append(all, '}'), nil
}

// told are the warnings beside an answer.
type told struct {
	Warnings []string `json:"warnings"`
}

func tell(warnings ...[]string) told {
	t := told{[]string{}}
	for _, w := range slices.Concat(warnings...) {
		t.Warnings = append(t.Warnings, fault.Discreet(w))
	}
	return t
}

// decode reads the body of a request that changes something. The header that it
// asks for, and the type, are such that no page of another site can send them.
func decode(r *http.Request, body any) error {
	if r.Header.Get("X-Dsh") != "1" {
		return &failure{code: http.StatusForbidden, class: fault.Policy.String(), message: "a change needs the header X-Dsh: 1"}
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return &failure{code: http.StatusUnsupportedMediaType, message: "a body has to be application/json"}
	}
	text, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return &failure{code: http.StatusRequestEntityTooLarge, message: "the body is larger than 2 MiB"}
	}
	if err != nil {
		return malformed("read the body: %v", err)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(body); err != nil {
		return malformed("read the body: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return malformed("read the body: there is something behind its end")
	}
	return nil
}

// problem is a failure as clients see it.
type problem struct {
	Message string `json:"message"`
	Hint    string `json:"hint"`
	Class   string `json:"class"`
}

func problemOf(err error) problem {
	return problem{fault.Discreet(err.Error()), fault.Discreet(fault.Hint(err)), fault.ClassOf(err).String()}
}

// Classes of failures that no command has.
const (
	conflictClass = "conflict"
	busyClass     = "busy"
	readOnlyClass = "read-only"
	missingClass  = "not-found"
)

// failure is a failure of the interface itself, with the status of its answer.
type failure struct {
	code          int
	class         string // "" is fault.Other
	message, hint string
	more          any // further members of the answer
}

func (f *failure) Error() string { return f.message }

func notFound(format string, args ...any) error {
	return &failure{code: http.StatusNotFound, class: missingClass, message: fmt.Sprintf(format, args...)}
}

func malformed(format string, args ...any) error {
	return &failure{code: http.StatusBadRequest, message: fmt.Sprintf(format, args...)}
}

func refused(class fault.Class, format string, args ...any) error {
	return &failure{code: http.StatusUnprocessableEntity, class: class.String(), message: fmt.Sprintf(format, args...)}
}

// writeError answers with an error, and what is known of it.
func writeError(w http.ResponseWriter, err error) {
	code, p, more := http.StatusUnprocessableEntity, problemOf(err), any(struct{}{})
	if f, ok := errors.AsType[*failure](err); ok {
		code, p.Hint, p.Class = f.code, fault.Discreet(f.hint), cmp.Or(f.class, fault.Other.String())
		if f.more != nil {
			more = f.more
		}
	} else if conflict, ok := errors.AsType[*action.ConflictError](err); ok {
		code, p.Class = http.StatusConflict, conflictClass
		more = map[string]any{"patch": conflict.Now}
	} else if missing(err) {
		code, p.Class = http.StatusNotFound, missingClass
	} else {
		code = codeOf(fault.ClassOf(err))
	}
	if refusal, ok := errors.AsType[*action.PatchRefusedError](err); ok {
		more = map[string]any{"findings": refusal.Findings}
	}
	text, err := merged(map[string]problem{"error": p}, more)
	if err != nil {
		text, code = nil, http.StatusInternalServerError
	}
	writeJSON(w, code, text)
}

// missing says that an error is that a profile is not there.
func missing(err error) bool {
	_, missing := errors.AsType[*profile.MissingError](err)
	_, unknown := errors.AsType[*action.UnknownError](err)
	return missing || unknown
}

func codeOf(class fault.Class) int {
	switch class {
	case fault.Policy:
		return http.StatusForbidden
	case fault.Network:
		return http.StatusBadGateway
	case fault.Environment, fault.Interrupted, fault.Terminated:
		return http.StatusServiceUnavailable
	default:
		return http.StatusUnprocessableEntity
	}
}

// heldLong is an error about a lock that somebody else has, in words for a page.
func heldLong(err error) error {
	if held, ok := errors.AsType[*staging.HeldError](err); ok {
		return &failure{code: http.StatusConflict, class: busyClass, message: held.Error()}
	}
	return err
}
