package mcp

import (
	"os/exec"
	"unsafe"

	"golang.org/x/sys/windows"
)

// group is a job: all that a program starts is in it, and ends when the job is
// closed, also because dsh ended.
type group struct{ job windows.Handle }

func startGroup(cmd *exec.Cmd) (group, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return group{}, err
	}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE},
	}
	if _, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits))); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		_ = windows.CloseHandle(job)
		return group{}, err
	}
	handle, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(cmd.Process.Pid))
	if err == nil {
		err = windows.AssignProcessToJobObject(job, handle)
		_ = windows.CloseHandle(handle)
	}
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = windows.CloseHandle(job)
		return group{}, err
	}
	return group{job}, nil
}

// accounting is JOBOBJECT_BASIC_ACCOUNTING_INFORMATION, class 1.
type accounting struct {
	userTime, kernelTime, periodUserTime, periodKernelTime int64
	pageFaults, processes, activeProcesses, terminated     uint32
}

func (g group) gone() bool {
	var info accounting
	err := windows.QueryInformationJobObject(g.job, 1, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)), nil)
	return err == nil && info.activeProcesses == 0
}

func (g group) ask()   { g.kill() } // Windows has no way to ask
func (g group) kill()  { _ = windows.TerminateJobObject(g.job, 1) }
func (g group) close() { _ = windows.CloseHandle(g.job) }
