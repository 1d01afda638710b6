# The C++ runtime of the bundle may be older than the compiler that is used now: plugins bring their own.
set(HEDDLE_PLUGIN_LINK_OPTIONS -static-libstdc++ -static-libgcc)
