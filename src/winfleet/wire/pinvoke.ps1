# Functions of the DLLs of Windows, made callable in memory. Add-Type would do it with a compiler, which writes into
# %TEMP%, takes a second or two, and is not let run on a locked-down box.

function Get-NativeType {
    # A type with a static method for each function of Table, which is @{ 'x.dll' = @{ Function = returned type, types of
    # the parameters ... } }. It is made once a session under Name. What a function leaves for GetLastError
    # is to be read at once, by GetLastWin32Error: PowerShell calls Windows, too.
    param([string] $Name, [hashtable] $Table)
    if (-not $global:Wire.ContainsKey('NativeTypes')) { $global:Wire['NativeTypes'] = @{} }
    $made = $global:Wire['NativeTypes']
    if ($made.ContainsKey($Name)) { return $made[$Name] }
    $identity = New-Object -TypeName System.Reflection.AssemblyName -ArgumentList "WinFleet.$Name"
    $assembly = [System.Reflection.Emit.AssemblyBuilder]::DefineDynamicAssembly($identity, [System.Reflection.Emit.AssemblyBuilderAccess]::Run)
    $type = $assembly.DefineDynamicModule("WinFleet.$Name").DefineType("WinFleet.$Name", [System.Reflection.TypeAttributes] 'Public, Abstract, Sealed')
    foreach ($library in $Table.Keys) {
        # By its full path: a DLL of that name in any other folder must not be loaded.
        $import = New-NativeImport -Path ([System.IO.Path]::Combine([Environment]::SystemDirectory, $library))
        foreach ($function in $Table[$library].Keys) {
            $types = [type[]] @($Table[$library][$function])
            $method = $type.DefineMethod($function, [System.Reflection.MethodAttributes] 'Public, Static, PinvokeImpl',
                $types[0], [type[]] @($types | Select-Object -Skip 1))
            $method.SetCustomAttribute($import)
            # Without it a function that returns a number would be taken for one that returns an error of COM.
            $method.SetImplementationFlags([System.Reflection.MethodImplAttributes]::PreserveSig)
        }
    }
    $made[$Name] = $type.CreateType()
    return $made[$Name]
}

function New-NativeImport {
    # [DllImport(Path, SetLastError = true)]; the name of the method is that of the function.
    param([string] $Path)
    $attribute = [System.Runtime.InteropServices.DllImportAttribute]
    return [System.Reflection.Emit.CustomAttributeBuilder]::new(
        $attribute.GetConstructor([type[]] @([string])), [object[]] @($Path),
        [System.Reflection.FieldInfo[]] @($attribute.GetField('SetLastError')), [object[]] @($true))
}
