@echo off
rem Starts rankd on the Node.js in this folder. After a double-click, which it recognizes by the quoted blank at the end
rem of the window's command line, rankd suggests the next step, and the window stays open.
if not "%~1"=="" goto run
setlocal EnableDelayedExpansion
set "line=!cmdcmdline:"='!"
if not "!line:~-3!"=="' '" (
  endlocal
  goto run
)
endlocal
"%~dp0runtime\node.exe" "%~dp0bin\rankd.js" __window
pause
exit /b
:run
"%~dp0runtime\node.exe" "%~dp0bin\rankd.js" %*
